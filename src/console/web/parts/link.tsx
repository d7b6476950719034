import type { ComponentChildren } from 'preact';
import { base, navigate } from '../app/router.ts';
import { Icon } from './icon.tsx';

type LinkProps = {
  /** Below /console/. */
  to: string;
  class?: string;
  'aria-current'?: 'page' | 'true' | undefined;
  'aria-label'?: string;
  children: ComponentChildren;
};

/** A link within the console; with a modifier key it opens a tab, as links do. */
export function Link({ to, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a {...rest} href={base + to.replace(/^\//, '')} onClick={follow}>
      {children}
    </a>
  );
}

/** Above a page's heading: the way back to where it belongs. */
export const BackLink = ({ to, children }: Pick<LinkProps, 'to' | 'children'>) => (
  <p class="crumb">
    <Link to={to} class="link">
      <Icon name="back" />
      {children}
    </Link>
  </p>
);
