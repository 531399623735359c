// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package faultclient

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Write is a request that changes something.
type Write struct {
	// Verb as the API server calls it: create, update, patch, delete.
	Verb string
	// Resource, with the subresource if there is one: chats, chats/status.
	Resource string
	// Name of the object; empty for a create, whose path does not hold it.
	Name string
	// Nth is how manieth write with this verb, resource and name it is in its process, from 1.
	Nth int
}

// String is the write in words, such as "update chats/status triage 2".
func (w Write) String() string {
	if w.Name == "" {
		return fmt.Sprintf("%s %s %d", w.Verb, w.Resource, w.Nth)
	}
	return fmt.Sprintf("%s %s %s %d", w.Verb, w.Resource, w.Name, w.Nth)
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// writeOf reads a write from the request; false if it writes nothing.
func writeOf(req *http.Request) (Write, bool) {
	verb, ok := verbs[req.Method]
	if !ok {
		return Write{}, false
	}
	resource, name := target(req.URL.Path)
	return Write{Verb: verb, Resource: resource, Name: name}, true
}

// target reads resource and name from the path of a request:
// /api/v1/[namespaces/<ns>/]<resource>[/<name>[/<subresource>]], or with /apis/<group>/<version> in front.
func target(path string) (resource, name string) {
	elements := strings.Split(strings.Trim(path, "/"), "/")
	prefix := 2
	if elements[0] == "apis" {
		prefix = 3
	}
	if len(elements) <= prefix {
		return "", ""
	}
	elements = elements[prefix:]
	if elements[0] == "namespaces" && len(elements) > 2 && !slices.Contains([]string{"status", "finalize"}, elements[2]) {
		elements = elements[2:]
	}
	resource = elements[0]
	if len(elements) > 1 {
		name = elements[1]
	}
	if len(elements) > 2 {
		resource += "/" + elements[2]
	}
	return resource, name
}
