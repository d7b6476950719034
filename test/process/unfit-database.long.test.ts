// The cases that `npm test` leaves out.
import './unfit-database.test.ts';
