// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/mcp/reference"
	"parley.dev/parley/internal/text/printable"
)

// servers finds out where the MCP servers are that chats refer to. The objects are read past the cache, for each
// attempt: they are few, and what was read of an object once would outlive its kind and the right to read it.
type servers struct {
	live   client.Reader
	mapper meta.RESTMapper
}

// provide adds to the facts where the servers are that the chat refers to.
func (r *servers) provide(ctx context.Context, s *scope) error {
	s.facts.Servers = []plan.Server{}
	chat := s.facts.Chat
	for i := range chat.Spec.MCPServers {
		entry := &chat.Spec.MCPServers[i]
		if entry.ServerRef == nil {
			continue
		}
		server, err := r.find(ctx, chat, entry)
		if err != nil {
			return err
		}
		s.facts.Servers = append(s.facts.Servers, server)
	}
	return nil
}

// find reads the object that the entry refers to.
func (r *servers) find(ctx context.Context, chat *v1beta1.Chat, entry *v1beta1.MCPServer) (plan.Server, error) {
	group := schema.GroupKind{Group: entry.ServerRef.Group, Kind: entry.ServerRef.Kind}
	kind, err := r.kind(group)
	switch {
	case meta.IsNoMatchError(err):
		return plan.Server{MCPServerAddress: reference.Without(entry, v1beta1.MCPReferenceNotFound,
			"the cluster does not have this kind")}, nil
	case err != nil:
		return unreadable(entry, err), ctx.Err()
	}
	return r.read(ctx, chat.Namespace, kind, entry), ctx.Err()
}

// kind is the group's kind in the first of the versions that Parley reads and the cluster has.
func (r *servers) kind(group schema.GroupKind) (kind schema.GroupVersionKind, err error) {
	for _, version := range reference.VersionsOf(group) {
		if _, err = r.mapper.RESTMapping(group, version); !meta.IsNoMatchError(err) {
			return group.WithVersion(version), err
		}
	}
	return kind, err
}

// read is what the object says. That it cannot be read fails no pass: the turn goes on without the server.
func (r *servers) read(ctx context.Context, namespace string, kind schema.GroupVersionKind,
	entry *v1beta1.MCPServer) plan.Server {
	from := &unstructured.Unstructured{}
	from.SetGroupVersionKind(kind)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: entry.ServerRef.Name}, from)
	switch {
	case meta.IsNoMatchError(err):
		return plan.Server{MCPServerAddress: reference.Without(entry, v1beta1.MCPReferenceNotFound,
			"the cluster does not have this kind")}
	case apierrors.IsNotFound(err):
		return plan.Server{Starting: true, MCPServerAddress: reference.Without(entry, v1beta1.MCPReferenceNotFound,
			"there is none in the namespace")}
	case apierrors.IsForbidden(err):
		return plan.Server{MCPServerAddress: reference.Without(entry, v1beta1.MCPReferenceForbidden,
			"the manager may not read it")}
	case err != nil:
		return unreadable(entry, err)
	}
	address := reference.Of(entry, from)
	return plan.Server{MCPServerAddress: address, Starting: address.Reason == v1beta1.MCPNotReady}
}

// unreadable is a server whose object cannot be read now, such as one of a kind whose conversion does not answer.
func unreadable(entry *v1beta1.MCPServer, err error) plan.Server {
	return plan.Server{Starting: true, MCPServerAddress: reference.Without(entry, v1beta1.MCPNotReady,
		fmt.Sprintf("it cannot be read: %s", printable.Line(err.Error())))}
}
