// The cases that `npm test` omits.
import './unfit-database.test.ts';
