import type { Component, LogEvent } from './events.ts';

/** What a line says beside its message; `err` is an error, with its stack and its causes. */
export type LogContext = { event: LogEvent } & Record<string, unknown>;

/** Messages are sentences: a capital letter, a full stop, and nothing secret. */
export type Write = (context: LogContext, message: string) => void;

/** Where the parts of the service write what an operator is to know. */
export type Log = Record<'info' | 'warn' | 'error', Write>;

/** The log of one component. */
export type Logger = Log &
  Record<'debug' | 'fatal', Write> & { isLevelEnabled(level: 'debug'): boolean };

/** What each line of a part has. */
export type LogBindings = {
  component: Component;
  /** The connector that the line is about, by its id in config/. */
  connectorId?: number;
};

/** Writes nothing itself: a line without a component would not compile. */
export type ServiceLog = { child(bindings: LogBindings): Logger };
