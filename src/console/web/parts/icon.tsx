const paths = {
  devices: 'M4 5h16v10H4zM9 19h6M12 15v4',
  alarm: 'M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15zM10 20.5h4',
  plus: 'M12 5v14M5 12h14',
  book: 'M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h11',
  leave: 'M14 4H5v16h9M10 12h10M16 8l4 4-4 4',
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14M16 16l4.5 4.5',
  check: 'M4.5 12.5l5 5 10-11',
  warn: 'M12 4l9 16H3zM12 10v4.5M12 17.2v.3',
  back: 'M15 5l-7 7 7 7',
  quiet: 'M4 4l16 16M8 6a6 6 0 0 1 10 5v4M6 10v6l-1.5 2h12M10 20.5h4',
  pulse: 'M3 12h4l3-8 4.5 16 3-8H21',
  person: 'M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8M4.5 20a7.5 7.5 0 0 1 15 0',
  lock: 'M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3',
  key: 'M8 12a4 4 0 1 1 0 8 4 4 0 0 1 0-8M11 13l8-8M16 8l3 3M13.5 10.5l2 2',
  gauge: 'M4 18a9 9 0 1 1 16 0M12 15l4-5',
  list: 'M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01',
  bin: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  mail: 'M4 6h16v12H4zM4 7l8 6 8-6',
  hook: 'M9 15l6-6M10 6l2-2a4 4 0 0 1 6 6l-2 2M14 18l-2 2a4 4 0 0 1-6-6l2-2',
  keyboard: 'M3 6h18v12H3zM7 10h.01M12 10h.01M17 10h.01M8 14h8',
  clock: 'M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16M12 8v4.5l3 2',
  chart: 'M4 4v16h16M8 15l3.5-4 3 2.5L20 8',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
} as const;

export type IconName = keyof typeof paths;

/** Decorative: there is always text beside it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
