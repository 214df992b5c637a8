{
  description = "Start programs under a policy: caps for everybody, each user, each group";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = forEach (system: {
        default =
          let
            pkgs = nixpkgs.legacyPackages.${system};
            manifest = builtins.fromTOML (builtins.readFile ./Cargo.toml);
          in
          pkgs.rustPlatform.buildRustPackage {
            pname = "rungate";
            inherit (manifest.package) version;
            src = self;
            cargoLock.lockFile = ./Cargo.lock;
            # The tests start programs as several users, which a build may not: they run in the gate.
            doCheck = false;
            postInstall = ''
              rm --recursive "$out/bin"
              patchShebangs packaging/install
              packaging/install --prefix "$out" --sysconfdir "$out/etc" --programs "target/${pkgs.stdenv.hostPlatform.rust.rustcTarget}/release"
            '';
            meta = {
              description = manifest.package.description;
              license = with nixpkgs.lib.licenses; [
                mit
                asl20
              ];
              mainProgram = "rungate";
              platforms = systems;
            };
          };
      });
    };
}
