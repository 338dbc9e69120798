// A change for one version, from the edit until devices run it, with two simulated devices.
import { randomBytes, randomUUID } from 'node:crypto';
import { check } from '../reader.mjs';

const PROJECT = 'rollout';
const MOST_ACTIONS = 8;

/** A device that fetches its configuration like the SDK, and sends batches with the revision that it runs. */
class Device {
  revision = 0;
  sampling = null;

  constructor(request, key, version) {
    this.request = request;
    this.headers = { authorization: `Bearer ${key}` };
    this.resource = {
      app_id: 'com.example.shop',
      app_version: version,
      install_id: randomUUID(),
      os_name: 'android',
      os_version: '15',
      device_model: 'Pixel 8',
      device_class: 'high',
    };
  }

  async poll() {
    const query = new URLSearchParams(this.resource);
    const answer = await this.request.get(`/v1/config?${query}`, { headers: this.headers });
    check(answer.ok(), `GET /v1/config: ${answer.status()}`);
    const document = await answer.json();
    this.revision = document.revision;
    this.sampling = document.sampling;
  }

  async upload() {
    const span = {
      trace_id: randomBytes(16).toString('hex'),
      span_id: randomBytes(8).toString('hex'),
      name: 'checkout',
      start: new Date().toISOString(),
      duration_us: 40_000,
      sample_rate: 0.01,
    };
    const head = { batch_id: randomUUID(), session_id: randomUUID(), config_revision: this.revision };
    const data = { ...head, resource: this.resource, spans: [span] };
    const answer = await this.request.post('/v1/ingest', { headers: this.headers, data });
    check(answer.status() === 202, `POST /v1/ingest: ${answer.status()}`);
  }
}

async function projectWithDevices(request) {
  check((await request.post('/api/v1/projects', { data: { id: PROJECT, name: 'Rollout' } })).ok(), 'no project');
  const made = await request.post(`/api/v1/projects/${PROJECT}/keys`, { data: { name: 'Devices' } });
  const { key } = await made.json();
  const devices = ['4.10.0', '4.9.0'].map((version) => new Device(request, key, version));
  // The server accepts a new key within a second.
  for (let tries = 0; tries < 50; tries += 1) {
    const answer = await request.get('/v1/config', { headers: devices[0].headers });
    if (answer.ok()) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  for (const device of devices) {
    await device.poll();
    await device.upload();
  }
  for (let tries = 0; tries < 120; tries += 1) {
    const usage = await (await request.get(`/api/v1/projects/${PROJECT}/query/usage?measure=installs`)).json();
    if (usage.rows?.[0]?.values[0] === devices.length) return devices;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error('the batches of the devices do not show');
}

async function a_change_for_one_version_is_previewed_saved_and_seen_to_arrive(reader, state) {
  const { page } = reader;
  const [latest, previous] = await projectWithDevices(page.request);
  state.updatedInstall = latest.resource.install_id;
  let actions = 0;
  const act = (doing) => {
    actions += 1;
    return doing;
  };
  await page.goto(`/config?project=${PROJECT}`);
  await act(page.getByRole('button', { name: 'Override', exact: true }).click());
  const override = page.getByRole('region', { name: 'Override override-1' });
  await act(override.getByRole('button', { name: 'Known values' }).click());
  await act(override.getByRole('option', { name: /4\.10\.0/ }).click());
  await act(override.getByRole('group', { name: 'Spans' }).getByLabel('Default').fill('50'));
  await act(page.getByRole('button', { name: 'Preview' }).click());
  await override.getByText('50 % of installs').waitFor();
  await page.getByText('Uploads expected after').waitFor();
  await reader.look('rollout-preview');
  await act(page.getByRole('button', { name: 'Save…' }).click());
  await act(page.getByRole('dialog').getByRole('button', { name: 'Save' }).click());
  const rollout = page.getByRole('region', { name: 'Rollout' });
  await rollout.getByText('0 % of the 2 installs').waitFor();
  await rollout.getByText('The revision changes the configuration of 1 install; 0').waitFor();

  for (let tries = 0; tries < 50 && latest.revision === 0; tries += 1) await latest.poll();
  check(latest.sampling.spans.default === 0.5, `the device keeps ${latest.sampling.spans.default}`);
  await latest.upload();
  await rollout.getByText('1 install; 1 (100 %) has the revision').waitFor();
  await rollout.getByText('50 % of the 2 installs').waitFor();
  await reader.look('rollout-half');
  await previous.poll();
  check(previous.sampling.spans.default === 0.01, 'the other version got the change');
  await previous.upload();
  await rollout.getByText('100 % of the 2 installs').waitFor();
  await rollout.getByText('Installs by revision').click();
  await rollout.getByRole('cell', { name: 'Revision 1' }).waitFor();
  await reader.look('rollout-done');
  check(actions <= MOST_ACTIONS, `the task took ${actions} actions`);
}

async function a_new_override_shows_what_is_active_for_its_devices(reader) {
  const { page } = reader;
  await page.goto(`/spans?project=${PROJECT}&name=checkout&app_version=4.10.0`);
  await page.getByRole('link', { name: 'Sample rate' }).click();
  const rate = page.getByRole('region', { name: 'Sample rate of checkout' });
  await rate.getByText('50 % where override-1 applies').waitFor();
  await rate.getByRole('button', { name: 'Change the rate for some devices' }).click();
  const override = page.getByRole('region', { name: 'Override override-2' });
  check(
    (await override.getByLabel('App version', { exact: true }).inputValue()) === '=4.10.0',
    'the version of the filter is not the condition',
  );
  await override.getByText('Reaches 1 of the installs of the last 24 hours. Versions: 4.10.0 (100 %).').waitFor();
  await override.getByText('in override-1, on all of these installs').waitFor({ state: 'detached' });
  const spans = override.getByRole('group', { name: 'Spans' });
  await override.getByRole('button', { name: 'Show all fields of sampling' }).click();
  await spans.getByText('Active value: 50 %').waitFor();
  check((await spans.getByLabel('Name, row 1').inputValue()) === 'checkout', 'the span has no row');
  await spans.getByText('matches any characters').waitFor();
  await spans.getByRole('button', { name: 'Use the active value' }).click();
  // Nothing is inherited, so the first click adds a row and puts the cursor into it.
  await spans.getByRole('button', { name: 'Change rates for specific spans' }).click();
  await page.keyboard.type('pay*');
  check((await spans.getByLabel('Name, row 1').inputValue()) === 'pay*', 'the new row has no focus');
  await spans.getByLabel('Rate, row 1').fill('100');
  await spans.getByLabel('Default').fill('25');
  await override.getByText('in override-1, on all of these installs').waitFor();
  await reader.look('rollout-active');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByText('50 % (active value)').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Discard' }).click();
}

async function an_override_that_matches_no_install_is_warned_about(reader) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Override', exact: true }).click();
  const override = page.getByRole('region', { name: 'Override override-2' });
  await override.getByLabel('App version', { exact: true }).fill('>=99');
  await override.getByRole('group', { name: 'Sampling' }).getByLabel('Janks').fill('50');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByText('No install matches override-2').waitFor();
  await reader.look('rollout-unmatched');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await override.getByText('No install active in the last 24 hours').waitFor();
  await page.getByRole('button', { name: 'Discard' }).click();
}

async function the_configuration_of_one_device_is_shown_with_its_reasons(reader, state) {
  const { page } = reader;
  await page.goto(`/installs/${state.updatedInstall}?project=${PROJECT}`);
  await page.getByRole('link', { name: 'Configuration of this device' }).click();
  await page.getByText('had revision 1. That is the current revision.').waitFor();
  const values = page.getByRole('table', { name: 'Values of the device' });
  await values.getByRole('row', { name: 'Sampling › Spans › Default 50 % override-1' }).waitFor();
  const overrides = page.getByRole('table', { name: 'Overrides of the configuration' });
  await overrides.getByText('Sets 1 value.').waitFor();
  await reader.look('one-device');
  await reader.overflow('one-device');
  await page.getByText('Other attributes and revision').click();
  await page.getByLabel('App version', { exact: true }).fill('4.9.0');
  await page.keyboard.press('Enter');
  await overrides.getByText('App version is 4.9.0. Wanted: =4.10.0.').waitFor();
  await values.getByRole('row', { name: 'Sampling › Spans › Default 1 % Default' }).waitFor();
  await page.getByRole('button', { name: 'Not from the defaults' }).click();
  await page.getByText('All values are defaults').waitFor();
  await reader.look('one-device-other-version');
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_change_for_one_version_is_previewed_saved_and_seen_to_arrive,
  a_new_override_shows_what_is_active_for_its_devices,
  an_override_that_matches_no_install_is_warned_about,
  the_configuration_of_one_device_is_shown_with_its_reasons,
];
