// Reads class names from Svelte components, also the names that an expression chooses.

import { parse } from 'svelte/compiler';

type Node = Record<string, unknown>;

export interface Classed {
  tag: string;
  /** Includes the properties in an expression, such as `verdict` of `class={change.verdict}`. */
  names: string[];
}

/** The elements that have classes. */
export function classesIn(source: string): Classed[] {
  const elements = nodesIn(parse(source, { modern: true }).fragment).filter((one) => Array.isArray(one.attributes));
  return elements.flatMap((element) => {
    const names = (element.attributes as Node[]).flatMap((one) => {
      if (one.type === 'ClassDirective') return [String(one.name)];
      return one.type === 'Attribute' && one.name === 'class' ? nodesIn(one.value).flatMap(namesOf) : [];
    });
    return names.length > 0 ? [{ tag: String(element.name), names }] : [];
  });
}

/** The classes that the styles of a component select. */
export function styledIn(source: string): string[] {
  const { css } = parse(source, { modern: true });
  return nodesIn(css?.children).flatMap((one) => (one.type === 'ClassSelector' ? [String(one.name)] : []));
}

function nodesIn(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  if (typeof value !== 'object' || value === null) return [];
  return [value as Node, ...Object.values(value).flatMap(nodesIn)];
}

function namesOf(node: Node): string[] {
  const text = { Text: node.data, Literal: node.value, Identifier: node.name, TemplateElement: node.value }[
    String(node.type)
  ];
  if (typeof text === 'string') return text.split(/\s+/).filter(Boolean);
  return text
    ? String((text as Node).cooked)
        .split(/\s+/)
        .filter(Boolean)
    : [];
}
