// The commands that upload symbols, for this server and project. Pure.

export interface Recipe {
  id: string;
  title: string;
  about: string;
  text: string;
}

/** `server` has no slash at its end. */
export function recipes(server: string, project: string): Recipe[] {
  return [
    {
      id: 'unjank',
      title: 'unjank',
      about:
        'The program of the server. It finds symbol files in folders, and uploads those that the server does not have.',
      text: [
        `export UNJANK_URL=${server} UNJANK_TOKEN=… UNJANK_PROJECT=${project}`,
        'unjank symbols upload app/build/outputs/mapping/release/mapping.txt',
        `unjank symbols upload target/release/${project}`,
      ].join('\n'),
    },
    {
      id: 'gradle',
      title: 'Gradle',
      about: 'Run this task after assembleRelease. Set UNJANK_TOKEN on the build server.',
      text: [
        'tasks.register<Exec>("uploadMapping") {',
        `    environment("UNJANK_URL", "${server}")`,
        `    environment("UNJANK_PROJECT", "${project}")`,
        '    commandLine("unjank", "symbols", "upload", "build/outputs/mapping/release/mapping.txt")',
        '}',
      ].join('\n'),
    },
    {
      id: 'sentry-cli',
      title: 'sentry-cli',
      about: 'The server speaks the upload protocol of sentry-cli. SENTRY_ORG may be any word.',
      text: [
        `export SENTRY_URL=${server}/ SENTRY_AUTH_TOKEN=… SENTRY_ORG=unjank SENTRY_PROJECT=${project}`,
        'sentry-cli upload-proguard app/build/outputs/mapping/release/mapping.txt',
        `sentry-cli debug-files upload target/release/${project}`,
      ].join('\n'),
    },
  ];
}

export function tokenCommand(project: string): string {
  return `unjank token create --name build-server --role editor --project ${project} --only-symbols`;
}
