# nix run "github:holdfast-agent/holdfast?dir=.packaging" starts Holdfast; nix develop has what its
# tests need. The first start installs what requirements.txt names, with its hashes, into a folder
# below ~/.cache; later ones ask no network.
{
  description = "Holdfast, a full-screen terminal agent that never loses work";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      version = "1.0.0";
      source = "${../.}";
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      forAll = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      needs = pkgs: [ pkgs.git pkgs.python313 pkgs.uv ]
        ++ pkgs.lib.optional pkgs.stdenv.hostPlatform.isLinux pkgs.bubblewrap;
    in
    {
      packages = forAll (pkgs: {
        default = pkgs.writeShellApplication {
          name = "holdfast";
          runtimeInputs = needs pkgs;
          text = ''
            place="''${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-nix/${version}-${baseNameOf source}"
            if [ ! -e "$place/ready" ]; then
              uv venv --quiet --clear --python ${pkgs.python313}/bin/python3 "$place"
              uv pip install --quiet --python "$place" --require-hashes -r ${./requirements.txt}
              uv pip install --quiet --python "$place" --no-deps ${source}
              touch "$place/ready"
            fi
            exec "$place/bin/holdfast" "$@"
          '';
        } // { inherit version; };
      });

      devShells = forAll (pkgs: {
        default = pkgs.mkShell { packages = needs pkgs ++ [ pkgs.fish pkgs.tmux pkgs.zsh ]; };
      });
    };
}
