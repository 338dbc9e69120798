// The commands that upload symbols, for this server and project. Pure.

export interface Recipe {
  id: string;
  title: string;
  about: string;
  text: string;
}

/** Without a slash at the end. */
export function recipes(server: string, project: string): Recipe[] {
  return [
    {
      id: 'unjank',
      title: 'unjank',
      about: 'The command finds symbol files in folders. It sends only what the server does not have.',
      text: [
        `export UNJANK_URL=${server} UNJANK_TOKEN=…`,
        `unjank symbols upload --project ${project} app/build/outputs/mapping/release`,
        `unjank symbols upload --project ${project} target/release/${project}`,
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
    {
      id: 'gradle',
      title: 'Gradle',
      about: 'Run this task after assembleRelease. The build server has the token in SENTRY_AUTH_TOKEN.',
      text: [
        'tasks.register<Exec>("uploadMapping") {',
        `    environment("SENTRY_URL", "${server}/")`,
        '    environment("SENTRY_ORG", "unjank")',
        `    environment("SENTRY_PROJECT", "${project}")`,
        '    commandLine("sentry-cli", "upload-proguard", "build/outputs/mapping/release/mapping.txt")',
        '}',
      ].join('\n'),
    },
  ];
}

export function tokenCommand(project: string): string {
  return `unjank token create --name build-server --role editor --project ${project} --only-symbols`;
}
