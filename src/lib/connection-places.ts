import { networks } from './address.ts';

/** What listens for connections. */
export type Listener = 'http' | 'mqtt';

/** A connection that may have to be closed for another one. */
type Held = {
  /** `destroy` closes it at once. */
  socket: { destroy(): unknown };
  /** Whether it may be closed for another client. `isUrgent`: no idle connection is left. */
  mayGo(isUrgent: boolean): boolean;
};

export type ConnectionPlace = {
  /** Its client has logged in: connections of strangers are closed first. */
  know(): void;
  /** From now on it is never closed for others. */
  keep(): void;
  /** Frees the place. May be called twice. */
  leave(): void;
};

type ConnectionPlacesOptions = {
  /** Connections of both listeners together. */
  most: number;
  /** Places reserved for each listener, however few it uses. */
  kept: number;
  /** A further limit per listener; `Infinity`: none. */
  ofListener: Record<Listener, number>;
  /** Called with the number of connections closed for others, or when a connection found no place. */
  onFull?: (listener: Listener, outcome: 'closed' | 'refused', count: number) => void;
};

type Leaf = Held & { place: ConnectionPlace };

/** A network with its connections that may be closed, and the smaller networks in it. */
type Network = { count: number; within: Map<string, Network>; leaves: Set<Leaf> };

const emptyNetwork = (): Network => ({ count: 0, within: new Map(), leaves: new Set() });

/** Connections of clients that have logged in, and of strangers. Those that are kept are in neither. */
type Clients = { strangers: Network; known: Network };
const noClients = (): Clients => ({ strangers: emptyNetwork(), known: emptyNetwork() });

/** The part of all connections that is closed at once, so that searching for the largest network is rare. */
const batchShare = 1 / 64;
/**
 * A search goes through all connections. If it finds none to close, the next connections are refused without a search,
 * one for each 512 open ones. So on average a refusal never costs more than a search through 512.
 */
const looksAtOnce = 512;

/** A network with less than this part of the largest one's connections is not the cause of the shortage. */
const blamedShare = 1 / 4;

/**
 * The connections that a process may have open. If a listener has no place left, it closes idle connections, the oldest
 * first, at the address that has most. If the addresses with many connections have no idle one, one of theirs that
 * waits for its client is closed before an idle one of an address with few. Strangers are closed before clients that
 * have logged in. An IPv6 client may own a /64, a /56 or a /48: the search takes the largest /48, then the largest /56
 * in it, then the largest /64.
 */
export class ConnectionPlaces {
  readonly #options: ConnectionPlacesOptions;
  readonly #clients: Record<Listener, Clients> = { http: noClients(), mqtt: noClients() };
  readonly #placeOf = new WeakMap<object, ConnectionPlace>();
  readonly #counts: Record<Listener, number> = { http: 0, mqtt: 0 };
  readonly #unlooked: Record<Listener, number> = { http: 0, mqtt: 0 };

  constructor(options: ConnectionPlacesOptions) {
    this.#options = options;
  }

  countOf(listener: Listener): number {
    return this.#counts[listener];
  }

  /** Null if there is no place, and no connection that may be closed. */
  enter(listener: Listener, address: string, held: Held): ConnectionPlace | null {
    if (this.#isFull(listener) && !this.#makeWay(listener)) {
      this.#options.onFull?.(listener, 'refused', 1);
      return null;
    }
    return this.#take(listener, networks(address), held);
  }

  /** The client of a connection has logged in (`ConnectionPlace.know`). */
  know(socket: object): void {
    this.#placeOf.get(socket)?.know();
  }

  #isFull(listener: Listener): boolean {
    const { most, kept, ofListener } = this.#options;
    const others = this.#counts[listener === 'http' ? 'mqtt' : 'http'];
    return this.#counts[listener] >= Math.min(ofListener[listener], most - Math.max(kept, others));
  }

  #take(listener: Listener, names: readonly string[], held: Held): ConnectionPlace {
    const { strangers, known } = this.#clients[listener];
    let isIn = true;
    let among: Network | null = strangers;
    const moveTo = (to: Network | null): void => {
      if (among) remove(among, names, leaf);
      among = to;
      if (to) add(to, names, leaf);
    };
    const place: ConnectionPlace = {
      know: () => {
        if (among === strangers) moveTo(known);
      },
      keep: () => moveTo(null),
      leave: () => {
        if (!isIn) return;
        isIn = false;
        this.#counts[listener] -= 1;
        this.#unlooked[listener] = 0;
        moveTo(null);
      },
    };
    const leaf = { ...held, place };
    add(strangers, names, leaf);
    this.#placeOf.set(held.socket, place);
    this.#counts[listener] += 1;
    return place;
  }

  #makeWay(listener: Listener): boolean {
    if (this.#unlooked[listener] > 0) {
      this.#unlooked[listener] -= 1;
      return false;
    }
    const wanted = Math.max(1, Math.floor(this.#counts[listener] * batchShare));
    const going = this.#pick(listener, wanted);
    for (const { socket, place } of going) {
      socket.destroy();
      place.leave();
    }
    if (going.length > 0) this.#options.onFull?.(listener, 'closed', going.length);
    else this.#unlooked[listener] = Math.floor(this.#counts[listener] / looksAtOnce);
    return !this.#isFull(listener);
  }

  #pick(listener: Listener, wanted: number): Leaf[] {
    const { strangers, known } = this.#clients[listener];
    for (const clients of [strangers, known]) {
      let largest = 0;
      for (const { count } of clients.within.values()) largest = Math.max(largest, count);
      const blamed = largest * blamedShare;
      for (const least of [blamed, 0])
        for (const isUrgent of [false, true]) {
          const found = pick(clients, wanted, isUrgent, least);
          if (found.length > 0) return found;
        }
    }
    return [];
  }
}

function add(root: Network, names: readonly string[], leaf: Leaf): void {
  let network = root;
  network.count += 1;
  for (const name of names) {
    let next = network.within.get(name);
    if (!next) network.within.set(name, (next = emptyNetwork()));
    next.count += 1;
    network = next;
  }
  network.leaves.add(leaf);
}

function remove(root: Network, names: readonly string[], leaf: Leaf): void {
  const path = [root];
  for (const name of names) {
    const next = path.at(-1)?.within.get(name);
    if (next) path.push(next);
  }
  if (!path.at(-1)?.leaves.delete(leaf)) return;
  for (const network of path) network.count -= 1;
  for (const [index, name] of names.entries())
    if (path[index + 1]?.count === 0) path[index]?.within.delete(name);
}

/**
 * Picks at most `most` connections that may be closed: from the largest network at most half of its connections, then
 * from the next one, down to networks with `least` connections.
 */
function pick(network: Network, most: number, isUrgent: boolean, least = 0): Leaf[] {
  const found: Leaf[] = [];
  for (const leaf of network.leaves) {
    if (found.length >= most) return found;
    if (leaf.mayGo(isUrgent)) found.push(leaf);
  }
  const largestFirst = [...network.within.values()].sort((a, b) => b.count - a.count);
  for (const smaller of largestFirst) {
    if (found.length >= most || smaller.count < least) break;
    const half = Math.ceil(smaller.count / 2);
    found.push(...pick(smaller, Math.min(half, most - found.length), isUrgent));
  }
  return found;
}
