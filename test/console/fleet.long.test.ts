// The tests that `npm test` leaves out.
import './fleet.test.ts';
