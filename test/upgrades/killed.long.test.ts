// The cases that `npm test` leaves out.
import './killed.test.ts';
