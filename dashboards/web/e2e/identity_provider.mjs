// Starts a server with a real identity provider on loopback. The provider has a login page, and walks set the claims of its users.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { PROJECT, freePort, startServer } from './server.mjs';

const CLIENT = { id: 'unjank', secret: 'the secret of the client' };

/** Starts an empty server and an identity provider without users. */
export async function startSingleSignOn() {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = await startProvider(`${url}/api/v1/session/oidc/callback`);
  try {
    const server = await startServer(
      [
        ...['--public-url', url, '--oidc-issuer', provider.issuer, '--oidc-name', 'Acme'],
        ...['--oidc-client-id', CLIENT.id, '--oidc-client-secret', CLIENT.secret],
        ...['--oidc-role', `developers=${PROJECT}:editor;leads=${PROJECT}:admin`],
      ],
      port,
    );
    const stop = () => Promise.all([server.stop(), provider.stop()]);
    return { ...server, invitation: await server.invite(), provider, stop };
  } catch (error) {
    await provider.stop();
    throw error;
  }
}

/** `callback` is the redirect URI of the server. */
async function startProvider(callback) {
  const port = await freePort();
  // A different site than 127.0.0.1, so that the SameSite rules of cookies apply as in production.
  const issuer = `http://localhost:${port}`;
  /** The claims, by the name that the user types. */
  const people = new Map();
  const provider = new Provider(issuer, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [callback] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/login/${interaction.uid}` },
    loadExistingGrant: allowEverything,
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    cookies: { keys: ['a key that signs the cookies of the provider'] },
  });
  const errors = [];
  provider.on('server_error', (_, error) => errors.push(error.stack));
  const answer = provider.callback();
  const server = createServer((request, response) => {
    if (request.url.startsWith('/login/')) void logIn(provider, request, response);
    else answer(request, response);
  });
  await new Promise((resolve) => server.listen(port, 'localhost', resolve));
  const stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { issuer, people, errors, stop };
}

/** Skips the consent page of the provider. */
async function allowEverything({ oidc }) {
  const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
  grant.addOIDCScope('openid email profile');
  await grant.save();
  return grant;
}

/** Serves the login form, and handles its submission. */
async function logIn(provider, request, response) {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(
      '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Acme</title><main><h1>Log in at Acme</h1>' +
        '<form method="post"><label>Name <input name="name"></label> <button>Continue</button></form></main></html>',
    );
    return;
  }
  let body = '';
  for await (const chunk of request) body += chunk;
  const accountId = new URLSearchParams(body).get('name');
  await provider.interactionFinished(request, response, { login: { accountId } });
}
