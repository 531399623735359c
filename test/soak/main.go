// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command soak lets many chats talk on a real cluster while it kills what they run on, and then holds the end to what
// Parley promises: every message is answered once, by its own answer; every history is whole; nothing is left over, and
// nothing goes on. On the local cluster it runs as root, for it ends processes of the node; on any other it deletes
// pods instead. hack/soak.sh runs it.
//
// Its seed decides who says what and the order of what is killed. When things happen is up to the cluster, so a seed
// repeats a course only roughly; the log says what was done, and when.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the soak's flags.
type options struct {
	kubeconfig string
	// devcluster is the command that restarts the API server of the local cluster, whose node is this machine; empty: the
	// cluster is another one.
	devcluster []string
	// image has the scripted model, toolbox a shell for workspaces.
	image, toolbox string
	// images are those of the two versions between which manager and gateway are moved in place of kills; none: there is
	// no upgrade.
	images   []string
	chats    int
	followed int
	duration time.Duration
	// every is the mean time between two kills.
	every time.Duration
	// longest is how long the first call of the model takes in one chat in twenty; 0: no call takes so long.
	longest time.Duration
	// maxGap is how long followers may have no stream; 0: any time.
	maxGap time.Duration
	// settle is how long the system may take to come to rest.
	settle time.Duration
	seed   uint64
	// out is the folder for the logs of what was killed, and for the objects where something does not hold.
	out string
}

func parse() options {
	var o options
	devcluster, images := "", ""
	// Not the program's own set: a library has put flags into that.
	flag := flag.NewFlagSet("soak", flag.ExitOnError)
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the cluster")
	flag.StringVar(&devcluster, "devcluster", os.Getenv("DEVCLUSTER"),
		"command of the local cluster, whose API server is restarted and whose processes are killed; empty: pods are deleted")
	flag.StringVar(&o.image, "image", "parley.dev/parley:dev", "image with the scripted model")
	flag.StringVar(&o.toolbox, "toolbox", cmp.Or(os.Getenv("TOOLBOX_IMAGE"), "parley.dev/toolbox:dev"),
		"image with a shell, for the workspaces of an upgrade")
	flag.StringVar(&images, "images", "", "two images, separated by a comma, between which manager and gateway are moved "+
		"back and forth; the end is the second one; only generation pods are deleted then")
	flag.IntVar(&o.chats, "chats", 50, "how many chats talk")
	flag.IntVar(&o.followed, "follow", 5, "how many of them are followed through the gateway")
	flag.DurationVar(&o.duration, "for", 10*time.Minute, "how long they talk")
	flag.DurationVar(&o.every, "every", 8*time.Second, "mean time between two kills")
	flag.DurationVar(&o.longest, "longest", 0,
		"how long the first call of the model takes in one chat in twenty; 0: no call takes so long")
	flag.DurationVar(&o.maxGap, "max-gap", 0,
		"how long followers may have no stream; 0: any time")
	flag.DurationVar(&o.settle, "settle", 5*time.Minute, "how long the system may take to come to rest")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "decides who says what and what is killed")
	flag.StringVar(&o.out, "out", ".parley/soak", "folder for logs and for what does not hold")
	_ = flag.Parse(os.Args[1:]) // It exits on errors.
	o.devcluster = strings.Fields(devcluster)
	var err error
	if o.images, err = parseImages(images); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	o.followed = min(o.followed, o.chats)
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	problems, err := run(ctx, parse())
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	for _, p := range problems {
		fmt.Println("DOES NOT HOLD:", p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	fmt.Println("everything holds")
}

// run lets the chats talk, waits for rest and returns what does not hold then. An error means that this could not be
// found out.
func run(ctx context.Context, o options) ([]string, error) {
	log := newLog(os.Stderr)
	log.Info("the soak begins", "seed", o.seed, "chats", o.chats, "for", o.duration, "every", o.every)
	w, err := newWorld(ctx, o, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ledger, err := w.watch(ctx)
	if err != nil {
		return nil, err
	}
	go w.explain(ctx, ledger)
	followers := w.follow(ctx)
	chaos := newChaos(w)
	if chaos.upgrade != nil {
		go chaos.upgrade.approve(ctx, w)
	}
	if err := w.talk(ctx, ledger, chaos); err != nil {
		return nil, err
	}
	if chaos.upgrade != nil {
		if err := chaos.upgrade.finish(ctx); err != nil {
			return nil, err
		}
	}
	log.Info("time is up: nobody talks and nothing is killed any more", "messages", len(ledger.all()), "answered",
		ledger.answered())
	end, problems := w.rest(ctx, ledger)
	for _, f := range followers {
		problems = append(problems, f.end(ctx, end.chain(f.chat))...)
	}
	end.calls, err = w.calls(ctx)
	if err != nil {
		return nil, err
	}
	problems = append(problems, end.broken()...)
	if chaos.upgrade != nil {
		problems = append(problems, chaos.upgrade.missing(end.questions)...)
	}
	report(os.Stdout, ledger, chaos, end, followers)
	if len(problems) > 0 {
		return problems, w.keep(ctx, end)
	}
	if err := w.remove(ctx); err != nil {
		problems = append(problems, err.Error())
	}
	return problems, nil
}
