// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// chartFiles are the files of the chart that are objects of config/, each from a folder or a file there. Templates
// change them as the values say, so that config/ remains the only place with the objects.
var chartFiles = map[string]string{
	"rbac.yaml":                   "rbac",
	"admission.yaml":              "admission",
	"stamp.yaml":                  "admission/stamp",
	"networkpolicies.yaml":        "default/networkpolicies.yaml",
	"manager.yaml":                "manager",
	"gateway.yaml":                "gateway/deployment.yaml",
	"service.yaml":                "gateway/service.yaml",
	"prometheus.yaml":             "prometheus",
	"dashboard.json":              "grafana/parley.json",
	"mcp/kagent.yaml":             "mcp/kagent/rights.yaml",
	"mcp/lifecycle-operator.yaml": "mcp/lifecycle-operator/rights.yaml",
	"mcp/services.yaml":           "mcp/services/rights.yaml",
	"mcp/toolhive.yaml":           "mcp/toolhive/rights.yaml",
}

// fairness has no kustomization of its own that could be built: it is a component.
var fairness = []string{"fairness/flowschema.yaml", "fairness/prioritylevel.yaml"}

// writeChart packs the chart for an image.
func (o *options) writeChart(i image) error {
	c, err := o.chart()
	if err != nil {
		return err
	}
	c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(o.version, "v"), o.version
	c.Metadata.Annotations = map[string]string{"parley.dev/image-digest": i.digest}
	if err := setDefaults(c, map[string]string{"imageRegistry: parley.dev": "imageRegistry: " + i.registry}); err != nil {
		return err
	}
	c.StampModTimes(time.Unix(0, 0)) // The same sources make the same archive.
	if _, err := chartutil.Save(c, o.out); err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	return nil
}

// chart is the chart of charts/parley with the objects of config/.
func (o *options) chart() (*chart.Chart, error) {
	loaded, err := loader.Load(filepath.Join(o.root, "charts", "parley"))
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(chartFiles)) {
		content, err := o.read(chartFiles[name])
		if err != nil {
			return nil, err
		}
		addFile(loaded, name, content)
	}
	var rules [][]byte
	for _, file := range fairness {
		content, err := o.read(file)
		if err != nil {
			return nil, err
		}
		rules = append(rules, bytes.TrimSpace(content))
	}
	addFile(loaded, "fairness.yaml", bytes.Join(rules, []byte("\n---\n")))
	definitions, err := filepath.Glob(o.config("crd", "bases", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		return nil, fmt.Errorf("finding the resource definitions in config/crd/bases: %w", err)
	}
	for _, file := range definitions {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		addFile(loaded, "crds/"+filepath.Base(file), content)
	}
	return loaded, nil
}

// read is a file of config/, or what its folder is built to.
func (o *options) read(path string) ([]byte, error) {
	place := o.config(path)
	if filepath.Ext(path) == "" {
		return kustomize(place)
	}
	return os.ReadFile(place)
}

func addFile(to *chart.Chart, name string, content []byte) {
	to.Files = append(to.Files, &common.File{Name: "files/" + name, Data: content})
}

// setDefaults replaces lines of values.yaml, each of which must be there once.
func setDefaults(c *chart.Chart, lines map[string]string) error {
	for _, file := range c.Raw {
		if file.Name != chartutil.ValuesfileName {
			continue
		}
		for line, other := range lines {
			if bytes.Count(file.Data, []byte("\n"+line+"\n")) != 1 {
				return fmt.Errorf("values.yaml does not have the line %q once", line)
			}
			file.Data = bytes.Replace(file.Data, []byte("\n"+line+"\n"), []byte("\n"+other+"\n"), 1)
		}
		values, err := loader.LoadValues(bytes.NewReader(file.Data))
		if err != nil {
			return fmt.Errorf("reading values.yaml: %w", err)
		}
		c.Values = values
		return nil
	}
	return fmt.Errorf("the chart has no %s", chartutil.ValuesfileName)
}
