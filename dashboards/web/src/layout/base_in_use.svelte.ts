// The base version with which a page compares although the filters name none, so that the control of the filter bar shows it.

let version = $state('');

export const baseInUse = {
  get version() {
    return version;
  },
  /** For an effect: returns its end. */
  use(base: string): () => void {
    version = base;
    return () => {
      version = '';
    };
  },
};
