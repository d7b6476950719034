// The cases that `npm test` leaves out.
import './portable.test.ts';
