// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

/** The address if a browser may follow it from a text that others wrote: http and https alone; else nothing. */
export function webAddress(text = ''): string | undefined {
  try {
    const url = new URL(text);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** A name of an object (RFC 1123 subdomain). Whatever else a field holds must not become a path. */
const objectName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Where the API server has a ChatMessage. Throws on what is no name. */
export function messagePath(namespace: string, name: string): string {
  for (const part of [namespace, name]) {
    if (!objectName.test(part)) {
      throw new Error(`${JSON.stringify(part)} is no name of an object`);
    }
  }
  return `/apis/parley.dev/v1beta1/namespaces/${namespace}/chatmessages/${name}`;
}
