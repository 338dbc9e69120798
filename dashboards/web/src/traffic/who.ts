// The dimension by which traffic is ranked: installs, or users with all their installs. Pure.

export const WHO = {
  install: { dimension: 'install_id', noun: 'install', title: 'Top 100 installs', label: 'Install' },
  user: { dimension: 'user_id', noun: 'user', title: 'Top 100 users', label: 'User' },
} as const;

export type Who = keyof typeof WHO;
