// Stacks as text, as they are pasted into a bug report. Pure.

import type { JankEvent, StackFrame } from './questions';

/** `at com.shop.Cart.total (Cart.kt:41)`, the innermost first. */
export function stackText(frames: StackFrame[]): string {
  return frames.map((frame) => `  at ${frame.label}${place(frame)}`).join('\n');
}

export function place(frame: StackFrame): string {
  if (!frame.file) return '';
  return frame.line > 0 ? ` (${frame.file}:${frame.line})` : ` (${frame.file})`;
}

export function eventText(event: JankEvent): string {
  const facts = [
    `${event.kind} of ${event.duration_ms} ms at ${event.start}`,
    `${event.app_version}, ${event.os_name} ${event.os_version}, ${event.device_model}, page ${event.page || '(none)'}`,
    `session ${event.session_id}`,
  ];
  return [...facts, stackText(event.stack)].join('\n');
}

/** The first part of a class is not enough to tell whose it is, the first two mostly are: `com.example`. */
export function packageOf(name: string): string {
  return name.split('.').slice(0, 2).join('.');
}

/**
 * Whether a frame is ours, as far as it can be known here: its package is that of the culprit, which the rules
 * found to be in the app. Without a culprit nothing is known.
 */
export function isInApp(frame: StackFrame, culprit: string): boolean {
  return culprit.includes('.') && (frame.class || frame.label).startsWith(`${packageOf(culprit)}.`);
}
