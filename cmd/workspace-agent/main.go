// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command workspace-agent is process 1 of a workspace's container. It serves the workspace's files and commands to
// generation pods, and also runs what the container was made for.
//
//	workspace-agent init [flags] [-- main command...]
//	workspace-agent copy-self DEST
//	workspace-agent copy-files SOURCE TARGET
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/version"
	"parley.dev/parley/internal/workspace/agent/copying"
	"parley.dev/parley/internal/workspace/protocol"
)

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workspace-agent:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: workspace-agent init [flags] [-- main command...] | " +
	"workspace-agent copy-self DEST | workspace-agent copy-files SOURCE TARGET")

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch name, args := args[0], args[1:]; {
	case name == "init":
		c, err := parse(args)
		if err != nil {
			return err
		}
		return serve(c)
	case name == "copy-self" && len(args) == 1:
		return copySelf(args[0])
	case name == "copy-files" && len(args) == 2:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return copying.Files(ctx, args[0], args[1])
	case name == "--version":
		version.Print(os.Stdout, "workspace-agent")
		return nil
	default:
		return errUsage
	}
}

func logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(printable.JSONWriter(os.Stderr), nil))
}

type config struct {
	listen, directory, state        string
	issuer, keys, namespace, podUID string
	subjects, viewers, main         []string
	grace                           time.Duration
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("workspace-agent init", flag.ContinueOnError)
	flags.StringVar(&c.listen, "listen", ":7080", "address for generation pods")
	flags.StringVar(&c.directory, "directory", "/workspace", "directory of the workspace's files")
	flags.StringVar(&c.state, "state-dir", protocol.StateDir,
		"directory that keeps what commands have written, which chat the workspace belongs to, and changes of files")
	flags.StringVar(&c.issuer, "issuer", "",
		"issuer of the cluster's service-account tokens; default: the one in the file "+protocol.IssuerFile+
			" next to its keys")
	flags.StringVar(&c.keys, "issuer-keys", path.Join(protocol.IssuerDir, protocol.IssuerKeysFile),
		"file with the issuer's keys, a JSON Web Key Set")
	// Commands inherit no variable whose name begins with PARLEY_.
	flags.StringVar(&c.namespace, "pod-namespace", os.Getenv("PARLEY_POD_NAMESPACE"),
		"namespace of this pod; default: $PARLEY_POD_NAMESPACE")
	flags.StringVar(&c.podUID, "pod-uid", os.Getenv("PARLEY_POD_UID"),
		"UID of this pod, for which a token must be meant; default: $PARLEY_POD_UID")
	flags.DurationVar(&c.grace, "grace", 20*time.Second,
		"how long commands have between SIGTERM and SIGKILL when the container stops; 6 s less than it has are enough")
	flags.Func("allow-subject",
		"subject that may use the workspace, such as system:serviceaccount:NAMESPACE:parley-generation (repeat it or "+
			"separate by commas); default: that of the pod's namespace", func(s string) error {
			c.subjects = append(c.subjects, strings.Split(s, ",")...)
			return nil
		})
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if c.namespace == "" || c.podUID == "" {
		return c, errors.New("--pod-namespace and --pod-uid are required: tokens must be meant for this pod")
	}
	if len(c.subjects) == 0 {
		c.subjects = []string{"system:serviceaccount:" + c.namespace + ":parley-generation"}
	}
	c.main = flags.Args()
	// Without the file, as before an upgrade of the operator, there are no viewers.
	viewers, _ := os.ReadFile(filepath.Join(filepath.Dir(c.keys), protocol.ViewersFile))
	c.viewers = strings.Fields(string(viewers))
	if c.issuer != "" {
		return c, nil
	}
	issuer, err := os.ReadFile(filepath.Join(filepath.Dir(c.keys), protocol.IssuerFile))
	if err != nil {
		return c, fmt.Errorf("finding the issuer of service-account tokens: mount the ConfigMap parley-issuer at %s: %w",
			protocol.IssuerDir, err)
	}
	c.issuer = strings.TrimSpace(string(issuer))
	return c, nil
}
