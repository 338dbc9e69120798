// The base version that a page chose because the filters name none. The filter bar shows this version.

let version = $state('');

export const baseInUse = {
  get version() {
    return version;
  },
  /** Call this function in an effect, and return its result as the cleanup of the effect. */
  use(base: string): () => void {
    version = base;
    return () => {
      version = '';
    };
  },
};
