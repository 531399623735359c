// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"runtime"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/text/version"
)

type clientVersion struct {
	Version    string `json:"version"`
	GoVersion  string `json:"goVersion"`
	Platform   string `json:"platform"`
	APIVersion string `json:"apiVersion"`
}

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plug-in",
		Long: "Prints the version of the plug-in, what it was built with, and the version of Parley's API that it uses. A " +
			"build that is not a release prints (devel). No cluster is contacted.",
		Example: "  kubectl chat version\n  kubectl chat version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.checkOutput(render.FormatJSON, render.FormatYAML); err != nil {
				return err
			}
			v := ownVersion()
			return o.Say("kubectl-chat "+v.Version, v, " (%s, %s, %s)", v.APIVersion, v.GoVersion, v.Platform)
		},
	}
}

func ownVersion() clientVersion {
	return clientVersion{Version: version.Version(), GoVersion: runtime.Version(), Platform: version.Platform(),
		APIVersion: v1beta1.GroupVersion.String()}
}
