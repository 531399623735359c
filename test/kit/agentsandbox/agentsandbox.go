// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentsandbox brings agent-sandbox, as its release is, to the clusters of tests: its resource definitions, and
// the controller that gives sandboxes their pods.
package agentsandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// module is agent-sandbox, in the version that go.mod names.
const module = "sigs.k8s.io/agent-sandbox"

// Install creates the resource definitions.
func Install(ctx context.Context, cfg *rest.Config) error {
	options, err := definitions(ctx)
	if err == nil {
		_, err = envtest.InstallCRDs(cfg, options)
	}
	if err != nil {
		return fmt.Errorf("installing the resource definitions of %s: %w", module, err)
	}
	return nil
}

// Uninstall deletes the resource definitions, and what there is of their kinds.
func Uninstall(ctx context.Context, cfg *rest.Config) error {
	options, err := definitions(ctx)
	if err == nil {
		err = envtest.UninstallCRDs(cfg, options)
	}
	if err != nil {
		return fmt.Errorf("deleting the resource definitions of %s: %w", module, err)
	}
	return nil
}

// definitions are those of the release. Nothing converts between their versions: tests use the one that is stored.
func definitions(ctx context.Context) (options envtest.CRDInstallOptions, err error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return options, fmt.Errorf("looking for module %s: %w", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "k8s", "crds", "*.yaml"))
	if err != nil || len(files) != 4 {
		return options, fmt.Errorf("the resource definitions of %s are %q: %w", module, files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return options, fmt.Errorf("reading a resource definition: %w", err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, definition); err != nil {
			return options, fmt.Errorf("reading %s: %w", filepath.Base(file), err)
		}
		definition.Spec.Conversion = nil
		options.CRDs = append(options.CRDs, definition)
	}
	return options, nil
}

// Start runs the controller, a program of hack/agent-sandbox, against the cluster of the kubeconfig until the context
// ends. Its log goes to the file.
func Start(ctx context.Context, program, kubeconfig, log string) (wait func(), err error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("creating the log: %w", err)
	}
	run := exec.CommandContext(ctx, program, "--kubeconfig="+kubeconfig, "--extensions", "--leader-elect=false",
		"--enable-webhook=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	run.Stdout, run.Stderr = file, file
	if err := run.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller of %s: %w", module, err)
	}
	return func() {
		_ = run.Wait() // It is killed when the context ends.
		_ = file.Close()
	}, nil
}
