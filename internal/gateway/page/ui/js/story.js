// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What the events of one chat's stream amount to. Knows no page.

/**
 * @typedef {{historyVersion: number, index: number, message: any}} Entry a message, or a note
 * @typedef {{type: 'Text'|'Reasoning'|'Call'|'Source', id: string, text?: string, name?: string, input?: string,
 *   state?: string, output?: string, result?: string, isError?: boolean, at?: string, url?: string}} Block
 */
export class Story {
  constructor() {
    /** @type {Entry[]} the messages that are committed, in their order; the first may not be that of the chat */
    this.entries = [];
    /** @type {Map<string, Entry>} by uid */
    this.notes = new Map();
    /** @type {any[]} */
    this.queue = [];
    this.status = null;
    this.error = null;
    this.retry = null;
    this.action = null;
    /** @type {null|{version: number, attempt: number, role: string, blocks: Block[]}} the attempt under way */
    this.live = null;
    /** False while the history is being told: then what is there is not the whole. */
    this.whole = false;
    this.deleted = false;
    /** @type {Entry[]|null} what takes the place of the history that is void */
    this.instead = null;
    this.notesTold = new Set();
  }

  /** A connection begins. Notes that it does not tell are gone. */
  connected() {
    this.whole = false;
    this.instead = null;
    this.notesTold = new Set();
  }

  /**
   * @param {import('./stream.js').StreamEvent} event
   * @returns {string} what has changed: 'history', 'live', 'present' or ''
   */
  apply({ name, data }) {
    switch (name) {
      case 'message': return this.#commit(data);
      case 'note': return this.#note(data);
      case 'note_deleted':
        this.notes.delete(data.uid);
        return 'history';
      case 'message_part': return this.#part(data);
      case 'preview_reset':
        if (this.live?.version === data.historyVersion && this.live.attempt === data.attempt) this.live = null;
        return 'live';
      case 'history_reset':
        // What was there is shown until the other history is whole, which may begin the same.
        Object.assign(this, { instead: [], live: null, error: null, retry: null, action: null, whole: false });
        this.notesTold = new Set();
        return '';
      case 'queue_update':
        this.queue = data.queue || [];
        return 'present';
      case 'status': return this.#stand(data);
      case 'error': case 'retry':
        this[name] = data;
        return 'present';
      case 'requires_action':
        this.action = data;
        return 'present';
      case 'deleted':
        this.deleted = true;
        return 'present';
      default: return '';
    }
  }

  /** @param {Entry} entry */
  #commit(entry) {
    const to = this.instead ?? this.entries;
    const first = to.length > 0 ? to[0].index : entry.index;
    to.length = Math.min(to.length, Math.max(0, entry.index - first));
    to.push(entry);
    if (this.live && entry.historyVersion > this.live.version) this.live = null;
    return this.instead ? '' : 'history';
  }

  /** @param {{index: number, generation: number, message: any}} note */
  #note(note) {
    this.notesTold.add(note.message.uid);
    this.notes.set(note.message.uid, { historyVersion: note.generation, index: note.index, message: note.message });
    return 'history';
  }

  #stand(status) {
    this.status = status;
    if (this.whole) return 'present';
    this.whole = true;
    if (this.instead) this.entries = this.instead;
    this.instead = null;
    for (const uid of [...this.notes.keys()]) if (!this.notesTold.has(uid)) this.notes.delete(uid);
    return 'history';
  }

  #part({ historyVersion, attempt, role, part }) {
    if (this.live?.version !== historyVersion || this.live.attempt !== attempt) {
      this.live = { version: historyVersion, attempt, role, blocks: [] };
    }
    const { blocks } = this.live;
    if (part.type === 'Text' || part.type === 'Reasoning') {
      let block = blocks.findLast((b) => b.type === part.type && b.id === (part.id || ''));
      if (!block) blocks.push(block = { type: part.type, id: part.id || '', text: '', at: part.at });
      block.text += part.text || '';
      return 'live';
    }
    if (part.type === 'Source') {
      blocks.push({ type: 'Source', id: part.id || '', name: part.name, url: part.url });
      return 'live';
    }
    let call = blocks.find((b) => b.type === 'Call' && b.id === part.id);
    if (!call) {
      blocks.push(call = { type: 'Call', id: part.id || '', name: part.name || '', input: '', output: '', state: 'writing' });
    }
    heard(call, part);
    return 'live';
  }

  /** Older messages have come. @param {Entry[]} older in their order */
  prepend(older) {
    this.entries.unshift(...older.filter((e) => this.entries.length === 0 || e.index < this.entries[0].index));
  }

  /** Why the last turn has failed, if it is at rest because of that. */
  get failure() {
    const { error, status } = this;
    return error && status?.phase === 'Error' && error.historyVersion === status.historyVersion ? error : null;
  }

  /** The attempt that failed and is made again, if it is. */
  get retrying() {
    const { retry, status } = this;
    const due = retry && status?.phase === 'Running' && retry.historyVersion === status.historyVersion;
    return due && retry.attempt >= (status.attempt || 0) ? retry : null;
  }

  /** What the chat waits for people or a client for, if it does. */
  get waiting() {
    const { action, status } = this;
    return action && status?.phase === 'RequiresAction' && action.historyVersion === status.historyVersion ? action : null;
  }

  /** What the newest call of an id was given. @param {string} id */
  inputOf(id) {
    const found = this.entries.flatMap((entry) => entry.message.parts ?? []).findLast((part) => part.toolCall?.id === id);
    return found?.toolCall.input ?? '';
  }

  get busy() {
    return ['Running', 'Interrupting', 'RequiresAction'].includes(this.status?.phase);
  }

  /** The status. A reply that comes already waits for nothing, which the status says later. */
  get present() {
    const { status, live } = this;
    return live?.blocks.length && String(status?.reason).startsWith('Waiting')
      ? { ...status, reason: 'Generating', message: '', wait: undefined } : status;
  }

  /** Where a message is: 'history', 'queue' or '' @param {string} name */
  place(name) {
    if (this.entries.some((e) => e.message.name === name)) return 'history';
    if ([...this.notes.values()].some((e) => e.message.name === name)) return 'history';
    return this.queue.some((q) => q.name === name) ? 'queue' : '';
  }
}

/** Takes a part of a call in. @param {Block} call */
function heard(call, part) {
  switch (part.type) {
    case 'ToolInput':
      call.input += part.text || '';
      call.name ||= part.name;
      break;
    case 'ToolCall':
      Object.assign(call, { input: part.text || '', name: part.name, state: 'called' });
      break;
    case 'ToolStart':
      Object.assign(call, { state: 'running', at: part.at });
      call.name ||= part.name;
      break;
    case 'ToolOutput':
      // A tail is shown; the whole comes with the result.
      call.output = (call.output + (part.text || '')).slice(-65536);
      break;
    case 'ToolResult':
      Object.assign(call, { result: part.text || '', isError: part.isError, state: 'done', until: part.at });
      break;
    default:
  }
}
