// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podspec builds the objects that Parley creates for its generation pods. It is pure: the same settings yield
// the same objects, and Hash reports whether two settings differ.
package podspec

import "time"

const (
	// LabelComponent marks Parley's own objects by what they are for.
	LabelComponent = "parley.dev/component"
	// ComponentGeneration is the value of LabelComponent on generation pods.
	ComponentGeneration = "generation"
	// ComponentWorkspace is the value of LabelComponent on the pods and claims of workspaces.
	ComponentWorkspace = "workspace"
	// LabelTemplate holds the Hash of the settings that a generation pod was built from. A pod whose hash is not the
	// namespace's current one gets no new work.
	LabelTemplate = "parley.dev/template"

	// LabelMetrics marks, with the value "true", namespaces whose pods may read the metrics of generation pods.
	LabelMetrics = "parley.dev/metrics"

	// ServiceAccount of the generation pods, in the chat's namespace.
	ServiceAccount = "parley-generation"

	// KeysDir holds the mounted API keys, as <Secret>/<key>.
	KeysDir = "/var/run/parley/keys"
	// RuntimeDir is shared by the containers of a generation pod: the relay's socket and its markers.
	RuntimeDir = "/run/parley"
	// IssuerKeysFile is where the relay keeps the keys of the cluster's issuer.
	IssuerKeysFile = RuntimeDir + "/issuer-keys.json"
	// GeneratorLock is what the generator locks while it lives.
	GeneratorLock = RuntimeDir + "/generator.lock"
	// RelaySocket is where the relay takes parts from the generator.
	RelaySocket = RuntimeDir + "/relay.sock"
	// RelayPort is where the relay serves gateways.
	RelayPort = 7070
	// HealthPort is where the generator answers the kubelet's probes.
	HealthPort = 8081
	// MetricsPort is where the generator serves only its metrics.
	MetricsPort = 8082
	// RelayMetricsPort is where the relay does.
	RelayMetricsPort = 7071

	// TerminationGrace lets calls under way end when a pod is removed: as long as a usual model call.
	TerminationGrace = 60 * time.Second
)
