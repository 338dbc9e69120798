// The logged-in user, and the projects that this user can see. `session_refresh` keeps the session alive.

import { api, ask, type Schemas } from './client';
import { Problem } from './problem';
import { forgetRefresh, whenSessionEnds } from './session_refresh';

export type Role = 'viewer' | 'editor' | 'admin';

const RANK: Record<Role, number> = { viewer: 0, editor: 1, admin: 2 };

class Session {
  state = $state<'unknown' | 'out' | 'in' | 'failed'>('unknown');
  me = $state<Schemas['Me'] | null>(null);
  /** The projects in which the user has a role. */
  projects = $state<{ id: string; name: string }[]>([]);
  problem = $state<Problem | null>(null);
  /** Whether the session ended without a logout. */
  ended = $state(false);

  constructor() {
    whenSessionEnds(() => {
      this.ended ||= this.state === 'in';
      this.state = 'out';
    });
  }

  async load() {
    this.problem = null;
    try {
      const me = await ask(api.GET('/api/v1/me'));
      this.me = me;
      await this.loadProjects();
      this.ended = false;
      this.state = 'in';
    } catch (error) {
      const problem = Problem.from(error);
      this.problem = problem;
      this.state = problem.status === 401 ? 'out' : 'failed';
    }
  }

  /** Only admins of the installation may list all projects. Other users get the projects in which they have a role. */
  async loadProjects() {
    const me = this.me;
    if (!me) return;
    if (me.is_admin) {
      const { projects } = await ask(api.GET('/api/v1/projects'));
      this.projects = projects.map(({ id, name }) => ({ id, name }));
    } else {
      this.projects = me.roles.map(({ project }) => ({ id: project, name: project }));
    }
  }

  async logIn(email: string, password: string) {
    forgetRefresh();
    await ask(api.POST('/api/v1/login', { body: { email, password } }));
    await this.load();
  }

  /** Creates the first admin, and logs the admin in. */
  async setUp(admin: Schemas['SetUp']) {
    forgetRefresh();
    await ask(api.POST('/api/v1/setup', { body: admin }));
    await this.load();
  }

  async acceptInvitation(token: string, password: string) {
    forgetRefresh();
    await ask(api.POST('/api/v1/invitation', { body: { token, password } }));
    await this.load();
  }

  async logOut() {
    await ask(api.DELETE('/api/v1/session'));
    this.#forget();
  }

  /** Ends the sessions of all browsers, including this one. */
  async logOutEverywhere() {
    await ask(api.DELETE('/api/v1/me/sessions'));
    this.#forget();
  }

  /** Changes the password. The server then ends all sessions and starts a new one for this browser. */
  async changePassword(present: string, wanted: string) {
    await ask(api.POST('/api/v1/me/password', { body: { password: present, new_password: wanted } }));
    forgetRefresh();
  }

  #forget() {
    forgetRefresh();
    this.me = null;
    this.projects = [];
    this.ended = false;
    this.state = 'out';
  }

  /** Whether the user has at least this role in the project. */
  may(role: Role, project: string): boolean {
    if (!this.me) return false;
    if (this.me.is_admin) return true;
    const mine = this.me.roles.find((one) => one.project === project);
    return mine !== undefined && RANK[mine.role] >= RANK[role];
  }
}

export const session = new Session();
