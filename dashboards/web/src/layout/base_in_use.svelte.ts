// The base version that a page chose because the filters name none. The filter bar shows it.

let version = $state('');

export const baseInUse = {
  get version() {
    return version;
  },
  /** For an effect: returns its cleanup. */
  use(base: string): () => void {
    version = base;
    return () => {
      version = '';
    };
  },
};
