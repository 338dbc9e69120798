// Classification rules: a fault, a dry run, a save, the history.
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

const RULES = `version = 2
built_in = true

[[rule]]
match = "com.example."
means = "in_app"
owner = "team-shop"
`;

async function rules_are_checked_tried_saved_and_rolled_back(reader) {
  const { page } = reader;
  reader.expect(422);
  await page.goto(`/rules?project=${PROJECT}`);
  const editor = page.getByLabel('Rules, as TOML');
  await editor.waitFor();
  check((await editor.inputValue()).includes('[[rule]]'), 'the rules of the server are not shown');
  await reader.look('rules');
  await editor.fill(RULES.replace('in_app', 'in_ap'));
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText(/^\d errors?$/).waitFor();
  await reader.look('rules-fault');
  await editor.fill(RULES);
  await page.getByRole('button', { name: 'Dry run' }).click();
  await page.getByText('Predicted effect').waitFor();
  await reader.look('rules-dry-run');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByLabel('Reason (shown in the history)').fill('Our code is ours');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved as revision 1').waitFor();

  await editor.fill(`${RULES}\n# Second thoughts.\n`);
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved as revision 2').waitFor();
  await page.getByRole('tab', { name: 'History' }).click();
  await page.getByText('# Second thoughts.').waitFor();
  await page.getByRole('button', { name: /Revision 1/ }).click();
  await page.getByRole('button', { name: 'Roll back to this' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
  await page.getByText('as revision 3').waitFor();
  await reader.look('rules-history');
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [rules_are_checked_tried_saved_and_rolled_back];
