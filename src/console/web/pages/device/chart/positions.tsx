export function Positions(_: object) {
  return null;
}
