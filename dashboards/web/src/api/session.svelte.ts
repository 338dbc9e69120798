// Who is logged in, and which projects they see.

import { api, ask, type Schemas } from './client';
import { forgetRefresh, whenSessionEnds } from './fetch_with_session';
import { Problem } from './problem';

export type Role = 'viewer' | 'editor' | 'admin';

const RANK: Record<Role, number> = { viewer: 0, editor: 1, admin: 2 };

class Session {
  state = $state<'unknown' | 'out' | 'in' | 'failed'>('unknown');
  me = $state<Schemas['Me'] | null>(null);
  /** Id and name of each project the reader has a role in. */
  projects = $state<{ id: string; name: string }[]>([]);
  problem = $state<Problem | null>(null);
  /** There was a session, and it ended by itself. */
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

  /** Only admins of the installation may list projects; others know those they have a role in. */
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

  async acceptInvitation(token: string, password: string) {
    forgetRefresh();
    await ask(api.POST('/api/v1/invitation', { body: { token, password } }));
    await this.load();
  }

  async logOut() {
    await ask(api.DELETE('/api/v1/session'));
    this.#forget();
  }

  /** Ends the sessions of all browsers, also of this one. */
  async logOutEverywhere() {
    await ask(api.DELETE('/api/v1/me/sessions'));
    this.#forget();
  }

  /** The server ends all sessions, and starts a new one for this browser. */
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

  /** Whether the reader may do in the project what asks for the role. */
  may(role: Role, project: string): boolean {
    if (!this.me) return false;
    if (this.me.is_admin) return true;
    const mine = this.me.roles.find((one) => one.project === project);
    return mine !== undefined && RANK[mine.role] >= RANK[role];
  }
}

export const session = new Session();
