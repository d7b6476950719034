// The tests that `npm test` leaves out.
import './account.test.ts';
