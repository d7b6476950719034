// The cases that `npm test` leaves out.
import './disable.test.ts';
