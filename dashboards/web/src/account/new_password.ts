// Checks a new password. The server checks the password again. Pure.

import type { Problem } from '../api/problem';

/** The minimum length in Unicode characters, as on the server. */
export const SHORTEST = 12;
/** The maximum length in bytes. */
const LONGEST = 256;

export interface PasswordFaults {
  present?: string;
  wanted?: string;
  again?: string;
}

/** Returns a message for each invalid field, or an empty object if the form can be sent. */
export function passwordFaults(typed: { present?: string; wanted: string; again: string }): PasswordFaults {
  const faults: PasswordFaults = {};
  if (typed.present === '') faults.present = 'Enter your current password.';
  // `length` of a string would count a character such as an emoji twice.
  const length = [...typed.wanted].length;
  if (length === 0) faults.wanted = 'Enter a new password.';
  else if (length < SHORTEST)
    faults.wanted = `The new password is too short: ${length} of at least ${SHORTEST} characters.`;
  else if (new TextEncoder().encode(typed.wanted).length > LONGEST) faults.wanted = 'The new password is too long.';
  else if (typed.wanted === typed.present) faults.wanted = 'The new password is the same as the current one.';
  if (!faults.wanted && typed.wanted !== typed.again) faults.again = 'The two new passwords do not match.';
  return faults;
}

/** Returns the faults of the fields that the server rejected, or an empty object if the problem concerns no field. */
export function refusedFields(problem: Problem): PasswordFaults {
  if (problem.code === 'login_refused') return { present: 'The current password is wrong.' };
  if (problem.code === 'password_unfit') return { wanted: problem.message };
  return {};
}
