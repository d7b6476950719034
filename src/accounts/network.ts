export { network } from '../core/network.ts';
