// Stacks as text for a bug report. Pure.

import type { JankEvent, StackFrame } from './queries';

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

/** The first two parts of a class name, which usually identify its owner: `com.example`. */
export function packageOf(name: string): string {
  return name.split('.').slice(0, 2).join('.');
}

/**
 * Whether a frame belongs to the app: whether its package is the package of the culprit, because the rules find the culprit in code of the
 * app. Without a culprit, no frame is marked.
 */
export function isInApp(frame: StackFrame, culprit: string): boolean {
  return culprit.includes('.') && (frame.class || frame.label).startsWith(`${packageOf(culprit)}.`);
}
