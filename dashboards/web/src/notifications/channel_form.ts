// The form of a channel. The API never returns saved secrets, so an empty field keeps the saved secret. Pure.

import type { Schemas } from '../api/client';

export type Channel = Schemas['Channel'];

export interface ChannelForm {
  kind: Channel['kind'];
  name: string;
  url: string;
  signingKey: string;
  username: string;
  password: string;
  /** Removes the saved user name, password and signing key. */
  forget: boolean;
  /** Separated by commas or line breaks. */
  to: string;
  least: Channel['least_severity'];
  incidents: boolean;
  digest: boolean;
  hour: number;
  enabled: boolean;
}

export const KINDS: Record<Channel['kind'], { label: string; url: string }> = {
  webhook: { label: 'Webhook', url: 'Receives JSON in the format of Alertmanager webhooks.' },
  alertmanager: { label: 'Alertmanager', url: 'Its base URL, such as https://alerts.example.com.' },
  slack: { label: 'Slack or compatible', url: 'The URL of the incoming webhook.' },
  email: { label: 'E-mail', url: '' },
};

export function toForm(channel: Channel | null): ChannelForm {
  return {
    kind: channel?.kind ?? 'webhook',
    name: channel?.name ?? '',
    url: '',
    signingKey: '',
    username: '',
    password: '',
    forget: false,
    to: channel?.to.join(', ') ?? '',
    least: channel?.least_severity ?? 'info',
    incidents: channel?.incidents ?? true,
    digest: channel?.digest ?? false,
    hour: channel?.digest_hour ?? 7,
    enabled: channel?.enabled ?? true,
  };
}

/** The body of the request. The body contains the kind only for a new channel. */
export function toChange(form: ChannelForm, isNew: boolean): Schemas['ChannelChange'] {
  const mail = form.kind === 'email';
  const secrets = mail
    ? {}
    : {
        ...(form.forget && { username: null, password: null, ...(form.kind === 'webhook' && { signing_key: null }) }),
        ...(form.url && { url: form.url.trim() }),
        ...(form.signingKey && form.kind === 'webhook' && { signing_key: form.signingKey }),
        ...(form.username && { username: form.username }),
        ...(form.password && { password: form.password }),
      };
  return {
    ...(isNew && { kind: form.kind }),
    name: form.name,
    ...secrets,
    ...(mail && { to: form.to.split(/[\s,;]+/).filter(Boolean) }),
    least_severity: form.least,
    incidents: form.incidents,
    digest: form.kind !== 'alertmanager' && form.digest,
    digest_hour: form.hour,
    enabled: form.enabled,
  };
}
