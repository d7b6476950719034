import { networkInterfaces } from 'node:os';

/** Networks that only this machine's own containers and machines see. */
const virtual = /^(docker|br-|veth|virbr|cni|flannel|lxc|podman)/;

/** The address that others of the local network reach this machine at; 127.0.0.1 if it has none. */
export function findLanAddress(): string {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (virtual.test(name)) continue;
    const found = addresses?.find(({ family, internal }) => family === 'IPv4' && !internal);
    if (found) return found.address;
  }
  return '127.0.0.1';
}
