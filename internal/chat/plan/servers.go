// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// ServerPatience is how long a turn waits, from its beginning, for MCP servers that are starting: a minute. Most images
// are pulled and most programs ready by then.
const ServerPatience = time.Minute

// ServerPoll is how often a turn looks at the servers that hold it: every second. They hold it for a minute at most. A
// watch would need the right to list all objects of their kinds.
const ServerPoll = time.Second

// pollServers has the servers that hold the turn looked at again.
func pollServers(p *pass) {
	needed := func(s Server) bool { return needsServer(p, s) }
	if p.held == machine.ServersStarting && slices.ContainsFunc(p.facts.Servers, needed) {
		p.plan.Again = Sooner(p.plan.Again, ServerPoll)
	}
}

// serversStarting reports whether a model that is to be asked waits for MCP servers, and asks where they are if that is
// not known. One that the attempt before was not told of is not waited for once more, so that a server which never gets
// ready costs a chat one wait. Calls do not wait: their results say what is wrong.
func serversStarting(p *pass, action v1beta1.GenerationAction) bool {
	p.plan.Asks.Servers = hasServerRef(p.chat) && p.facts.Servers == nil
	began := p.status().Turn.StartedAt
	if action != v1beta1.ActionGenerateAssistant || began == nil {
		return false
	}
	left := workspaceWait(p, began.Time)
	for _, s := range p.facts.Servers {
		if needsServer(p, s) {
			left = max(left, serverPatience(s)-p.facts.Now.Sub(began.Time))
		}
	}
	p.plan.Again = max(p.plan.Again, left)
	return left > 0
}

// workspaceWait is how long the turn still waits for the workspace in which commands of MCP servers run: a minute from
// the beginning of the turn, or from when the workspace stopped being ready. If its state is not known, it asks for the
// state, which starts the workspace, unless the model has stopped it in this turn.
func workspaceWait(p *pass, began time.Time) (left time.Duration) {
	if !p.facts.HasWorkspace || !runsCommands(p.chat) || stoppedSince(p, began) {
		return 0
	}
	w := p.facts.Workspace
	if w == nil {
		p.plan.Asks.Workspace = true
		return 0
	}
	if w.Starting == "" {
		return 0
	}
	if w.Since.After(began) {
		began = w.Since
	}
	return ServerPatience - p.facts.Now.Sub(began)
}

// stoppedSince reports whether the model has stopped its workspace since then.
func stoppedSince(p *pass, began time.Time) bool {
	w := p.status().Workspace
	return w != nil && w.StoppedAt != nil && w.StoppedAt.After(began)
}

// runsCommands reports whether an entry of mcpServers is a command.
func runsCommands(chat *v1beta1.Chat) bool {
	return slices.ContainsFunc(chat.Spec.MCPServers, func(s v1beta1.MCPServer) bool { return len(s.Command) > 0 })
}

// serverPatience is how long a turn waits for the server: for an object that does not exist, as long as for what a
// manifest may still bring.
func serverPatience(s Server) time.Duration {
	if s.Reason == v1beta1.MCPReferenceNotFound {
		return ManifestPatience
	}
	return ServerPatience
}

// needsServer reports whether the server is starting, and no attempt has begun without it.
func needsServer(p *pass, s Server) bool {
	return s.Starting && !slices.ContainsFunc(p.status().Internal.MCPServers, func(told v1beta1.MCPServerAddress) bool {
		return told.Name == s.Name && told.URL == "" && equality.Semantic.DeepEqual(told.Ref, s.Ref)
	})
}

// hasServerRef reports whether an entry of mcpServers is a reference.
func hasServerRef(chat *v1beta1.Chat) bool {
	return slices.ContainsFunc(chat.Spec.MCPServers, func(s v1beta1.MCPServer) bool { return s.ServerRef != nil })
}

// addresses are where the servers are.
func addresses(servers []Server) (all []v1beta1.MCPServerAddress) {
	for _, s := range servers {
		all = append(all, s.MCPServerAddress)
	}
	return all
}

// startingServers says what the servers wait for that are starting, and the workspace for those that run there.
func startingServers(p *pass, servers []Server) string {
	var said []string
	if w := p.facts.Workspace; w != nil && w.Starting != "" && runsCommands(p.chat) {
		said = append(said, "the workspace in which they run: "+w.Starting)
	}
	for _, s := range servers {
		if s.Starting {
			said = append(said, s.Name+": "+s.Message)
		}
	}
	return strings.Join(said, "; ")
}
