import { downTopics, unnamedDownTopics, type DownTopic } from '../../src/contract/topic.ts';
import { readAfter, type Given } from './down-after.ts';
import { HttpProblem } from './problem.ts';

/** What a poll asks for. `waitMs` 0: what there is at once. */
export type PollQuery = { waitMs: number; topics: readonly DownTopic[]; given: Given };

/** Proxies on the way mostly end a request that is not answered for a minute. */
const maxWaitSeconds = 60;

/** Reads a poll's query; other members are ignored. Throws 400 for one that is not as it must be. */
export function readPollQuery(query: string): PollQuery {
  const members = new URLSearchParams(query);
  return {
    waitMs: readWait(members.get('wait')) * 1_000,
    topics: readTopics(members.get('topics')),
    given: readGiven(members.get('after')),
  };
}

function readWait(text: string | null): number {
  if (text === null) return 0;
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Infinity;
  if (seconds <= maxWaitSeconds) return seconds;
  throw wrong('wait', `expected whole seconds, 0 to ${maxWaitSeconds}`);
}

function readTopics(text: string | null): readonly DownTopic[] {
  if (text === null) return unnamedDownTopics;
  const names = new Set(text.split(','));
  const topics = downTopics.filter((topic) => names.has(topic));
  if (topics.length === names.size) return topics;
  throw wrong('topics', `expected some of ${downTopics.join()}, with commas in between`);
}

function readGiven(text: string | null): Given {
  const given = readAfter(text ?? '');
  if (given) return given;
  throw wrong('after', 'expected `after` as the answer before had it');
}

function wrong(member: string, message: string): HttpProblem {
  const errors = [{ path: `/${member}`, message }];
  return new HttpProblem(400, 'invalid-input', `${member}: ${message}.`, { errors });
}
