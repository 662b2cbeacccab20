from bot.start import main

main()
