import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Skeleton } from './panel.tsx';
import { Problem } from './problem.tsx';

/** A part of a page whose script is loaded when it is first shown. */
export function lazyPart<P extends object>(load: () => Promise<ComponentType<P>>) {
  let loaded: ComponentType<P> | undefined;
  return function LazyPart(props: P) {
    const [error, setError] = useState<unknown>(null);
    const [, setIsLoaded] = useState(loaded !== undefined);
    useEffect(() => {
      load().then((part) => {
        loaded = part;
        setIsLoaded(true);
      }, setError);
    }, []);
    if (loaded) {
      const Part = loaded;
      return <Part {...props} />;
    }
    return error === null ? (
      <Skeleton lines={3} />
    ) : (
      <Problem error={error} retry={() => location.reload()} />
    );
  };
}
