// The cases that `npm test` leaves out.
import './portable-refused.test.ts';
