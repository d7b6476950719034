export { network } from '../lib/network.ts';
