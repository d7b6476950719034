import pg from 'pg';
import { types } from './types.ts';

const { JSON: json } = pg.types.builtins;

/** For a query whose JSON is passed on: it comes as the text that is stored, everything else as usual. */
export const jsonAsText: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === json ? (text: string) => text : types.getTypeParser(oid, format),
};
