// The cases that `npm test` leaves out.
import './portable-tables.test.ts';
