import { describe, expect, it } from 'vitest';
import { templateFault } from '../src/format/link_template';
import { EXAMPLES, PLACEHOLDERS as TRACES, documentOf } from '../src/opentelemetry/trace_links';
import { PLACEHOLDERS } from '../src/symbols/source_links_form';

const fault = (template: string) => templateFault(template, PLACEHOLDERS);

describe('address templates', () => {
  it('have faults that are described', () => {
    expect(fault('')).toBe('');
    expect(fault(' https://github.com/acme/shop/blob/v{version}/{path}#L{line} ')).toBe('');
    for (const wrong of ['javascript:{path}', 'github.com/{path}', 'https://{version}.example.com/{path}']) {
      expect(fault(wrong)).toMatch('Start with');
    }
    expect(fault('https://github.com/{path}/{ref}')).toMatch('{ref} is not a placeholder');
    expect(fault('https://github.com/{path}/{')).toMatch('{ is not a placeholder');
    expect(fault('https://github.com/')).toBe('Add {path}.');
  });

  it('of traces need the trace id', () => {
    for (const { template } of EXAMPLES) expect(templateFault(template, TRACES)).toBe('');
    expect(templateFault('https://jaeger.example.com/trace/', TRACES)).toBe('Add {trace_id}.');
    expect(templateFault('https://jaeger.example.com/{path}', TRACES)).toMatch('{path} is not a placeholder');
  });

  it('are saved without blanks around them', () => {
    expect(documentOf({ name: ' Jaeger ', template: ' x ' })).toEqual({ name: 'Jaeger', template: 'x' });
  });
});
