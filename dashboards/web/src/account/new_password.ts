// The rules for a new password, as sentences for the form. Pure: the server checks them again.

import type { Problem } from '../api/problem';

/** Characters, as the server counts them. */
export const SHORTEST = 12;
/** Bytes. */
const LONGEST = 256;

export interface PasswordFaults {
  present?: string;
  wanted?: string;
  again?: string;
}

/** An empty object: the form can be sent. */
export function passwordFaults(typed: { present?: string; wanted: string; again: string }): PasswordFaults {
  const faults: PasswordFaults = {};
  if (typed.present === '') faults.present = 'Enter your present password.';
  // A character outside the basic plane, such as an emoji, is two units of a text in JavaScript.
  const length = [...typed.wanted].length;
  if (length === 0) faults.wanted = 'Enter a new password.';
  else if (length < SHORTEST) faults.wanted = `The new password has ${length} of at least ${SHORTEST} characters.`;
  else if (new TextEncoder().encode(typed.wanted).length > LONGEST) faults.wanted = 'The new password is too long.';
  else if (typed.wanted === typed.present) faults.wanted = 'The new password is the same as the present one.';
  if (!faults.wanted && typed.wanted !== typed.again) faults.again = 'The two new passwords are not the same.';
  return faults;
}

/** The field that a refusal of the server belongs to; empty when it belongs to none. */
export function refusedFields(problem: Problem): PasswordFaults {
  if (problem.code === 'login_refused') return { present: 'The present password is wrong.' };
  if (problem.code === 'password_unfit') return { wanted: problem.message };
  return {};
}
