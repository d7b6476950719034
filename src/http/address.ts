import { BlockList, isIP } from 'node:net';

export type FindAddress = (peer: string, forwardedFor: string) => string;

/**
 * Finds the client's address. `X-Forwarded-For` counts only as far as trusted proxies wrote it: read
 * from the right, the first address that is not a trusted proxy's is the client. `trusted` has
 * addresses and networks (`10.0.0.0/8`); empty trusts nobody. Throws for what is neither.
 */
export function trustProxies(trusted: string[]): FindAddress {
  const isTrusted = trusts(trusted);
  return (peer, forwardedFor) => {
    let address = plain(peer);
    const hops = forwardedFor === '' ? [] : forwardedFor.split(',');
    for (const hop of hops.toReversed()) {
      const before = plain(hop.trim());
      if (!isTrusted(address) || isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
}

/** Tells the addresses of trusted proxies from all others. Throws for what is neither address nor network. */
export function trusts(trusted: string[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const entry of trusted) addNetwork(proxies, entry);
  return (address) =>
    isIP(address) !== 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function addNetwork(list: BlockList, entry: string): void {
  const [address = '', prefix] = entry.split('/');
  const version = isIP(address);
  if (version === 0) throw new Error(`A trusted proxy is an address or a network, not "${entry}".`);
  const family = version === 6 ? 'ipv6' : 'ipv4';
  if (prefix === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(prefix), family);
}

/** An IPv4 address as it arrives on a dual-stack socket, without the IPv4-mapped prefix. */
export function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
