// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

// Audience is what a gateway's token for the relay of one pod is for: parley-relay/NAMESPACE/POD-UID. A relay that is
// not what it seems, and whoever takes a token from it, can use that token nowhere else.
func Audience(namespace, podUID string) string { return "parley-relay/" + namespace + "/" + podUID }
