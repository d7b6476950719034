// The faults that `npm test` leaves out.
import './faults.test.ts';
