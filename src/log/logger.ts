import type { Component, LogEvent } from './events.ts';

/** The members of a line besides its message. `err` is an error, with its stack and its causes. */
export type LogContext = { event: LogEvent } & Record<string, unknown>;

/** Messages are sentences: a capital letter, a full stop, and nothing secret. */
export type Write = (context: LogContext, message: string) => void;

/** Where the parts of the service write what an operator should know. */
export type Log = Record<'info' | 'warn' | 'error', Write>;

/** The log of one component. */
export type Logger = Log &
  Record<'debug' | 'fatal', Write> & { isLevelEnabled(level: 'debug'): boolean };

/** Members of each line of a component. */
export type LogBindings = {
  component: Component;
  /** The connector that the line is about, by its id in config/. */
  connectorId?: number;
};

/** Cannot write by itself, so a line without a component does not compile. */
export type ServiceLog = { child(bindings: LogBindings): Logger };
